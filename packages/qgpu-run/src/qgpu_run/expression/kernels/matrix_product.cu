// Matrix product with 64-bit sums, one thread a result; reports what does not fit 32 bits.
extern "C" __global__ void matrix_product(
    const int* a, const int* b, int* c, int* error, int inner, int cols, int step_a, int next_a,
    int step_b, int next_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int row = i / cols * next_a;
    int col = i % cols * next_b;
    long long sum = 0;
    int overflow = 0;
    #pragma unroll 1
    for (int k = 0; k < inner; ++k) {
        sum += (long long)a[row + k * step_a] * b[col + k * step_b];
        // Beyond 2^61 the next sum might not fit 64 bits.
        overflow |= ((int)(sum >> 32) >> 29) + 1 & ~1;
    }
    c[i] = (int)sum;
    if (overflow != 0 || (int)(sum >> 32) != (int)sum >> 31)
        *error = 1;
}
