// Square root rounded down, one bit a step from the highest that matters; reports negatives.
extern "C" __global__ void integer_root(const int* x, int* y, int* error, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    if (v < 0)
        *error = 3;
    unsigned left = v;
    unsigned r = 0;
    #pragma unroll 1
    for (unsigned bit = 0x40000000u >> (__clz(v | 1) - 1 & 30); bit != 0; bit >>= 2) {
        unsigned candidate = r + bit;
        r >>= 1;
        if (left >= candidate) {
            left -= candidate;
            r += bit;
        }
    }
    y[i] = r;
}
