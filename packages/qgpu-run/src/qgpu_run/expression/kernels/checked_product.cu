// Products of rows of numbers; what does not fit 32 bits is reported, unless a factor is zero.
extern "C" __global__ void checked_product(
    const int* x, int* y, int* error, int count, int step, int next_row, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned r = 1;
    unsigned sign = 0;
    unsigned overflow = 0;
    bool zero = false;
    #pragma unroll 1
    for (int k = 0; k < count; ++k) {
        int v = x[i * next_row + k * step];
        unsigned size = v < 0 ? 0u - v : v;
        sign ^= v;
        zero |= v == 0;
        overflow |= __umulhi(r, size);
        r *= size;
    }
    sign >>= 31;
    r = zero ? 0 : r;
    y[i] = sign ? 0u - r : r;
    if (!zero && (overflow != 0 || r > 0x7fffffffu + sign))
        *error = 1;
}
