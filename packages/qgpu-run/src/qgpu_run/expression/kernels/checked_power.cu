// Integer power by repeated squaring of the absolute value; reports overflow.
extern "C" __global__ void checked_power(
    const int* a, const int* b, int* c, int* error, int step_a, int step_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int e = b[i * step_b];
    unsigned square = x < 0 ? 0u - x : x;
    unsigned r = 1;
    unsigned sign = x < 0 ? e & 1 : 0;
    unsigned overflow = 0;
    if (e < 0)
        *error = 3;
    #pragma unroll 1
    while (e > 0) {
        if (e & 1) {
            overflow |= __umulhi(r, square);
            r *= square;
        }
        e >>= 1;
        if (e > 0) {
            // A bit of e is left, so that this square is needed.
            overflow |= __umulhi(square, square);
            square *= square;
        }
    }
    c[i] = sign ? 0u - r : r;
    if (overflow != 0 || r > 0x7fffffffu + sign)
        *error = 1;
}
