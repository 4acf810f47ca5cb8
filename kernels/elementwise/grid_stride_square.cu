// A grid-stride loop: 16 threads in all cover 40 elements in steps of the grid size.
extern "C" __global__ void grid_stride_square(const int* x, int* y, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] * x[i];
}
