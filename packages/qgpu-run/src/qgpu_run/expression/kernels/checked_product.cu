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
    const char* row = (const char*)(x + i * next_row);
    unsigned k = 0;
    #pragma unroll 1
    do {
        int v = *(const int*)(row + k);
        unsigned size = v < 0 ? 0u - v : v;
        sign ^= v;
        zero |= v == 0;
        overflow |= __umulhi(r, size);
        r *= size;
        k += 4 * step;
    } while (k < 4 * step * count);
    sign >>= 31;
    r = zero ? 0 : r;
    y[i] = sign ? 0u - r : r;
    if (!zero && (overflow != 0 || r > 0x7fffffffu + sign))
        *error = 1;
}
