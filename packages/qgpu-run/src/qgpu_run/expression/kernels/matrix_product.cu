// Matrix product with 64-bit sums, one thread a result; reports what does not fit 32 bits.
extern "C" __global__ void matrix_product(
    const int* a, const int* b, int* c, int* error, int inner, int cols, int step_a, int next_a,
    int step_b, int next_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const char* row = (const char*)(a + i / cols * next_a);
    const char* col = (const char*)(b + i % cols * next_b);
    long long sum = 0;
    int top = 0;
    unsigned k = 0;
    #pragma unroll 1
    do {
        int y = *(const int*)(col + k * step_b);
        long long product = (long long)*(const int*)(row + k * step_a) * y;
        sum += product;
        top += (int)(product >> 32) >> 16;
        k += 4;
    } while (k < 4 * inner);
    c[i] = (int)sum;
    // 64 bits may have overflowed as well: where the sum is small, what is above 2^48 is, too.
    if (top > 0 || top < -inner || (int)(sum >> 32) != (int)sum >> 31)
        *error = 1;
}
