// Textbook matrix product: each thread walks one row of a and one column of b.
extern "C" __global__ void matmul_naive(const int* a, const int* b, int* c, int rows, int inner, int cols)
{
    int col = threadIdx.x;
    int row = threadIdx.y;
    if (row >= rows || col >= cols)
        return;
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < inner; ++k)
        sum += a[row * inner + k] * b[k * cols + col];
    c[row * cols + col] = sum;
}
