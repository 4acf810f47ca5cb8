// Matrix times vector: thread t computes the product of row t with x.
extern "C" __global__ void matvec(const int* __restrict__ m, const int* __restrict__ x, int* __restrict__ y, int cols)
{
    const int* row = m + threadIdx.x * cols;
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < cols; ++k)
        sum += row[k] * x[k];
    y[threadIdx.x] = sum;
}
