// One block per row: threads stride along the row, then atomicMax in shared memory.
extern "C" __global__ void row_max(const int* m, int width, int* best)
{
    __shared__ int top;
    if (threadIdx.x == 0)
        top = -2147483647 - 1;
    __syncthreads();
    const int* row = m + blockIdx.x * width;
    #pragma unroll 1
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        atomicMax(&top, row[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        best[blockIdx.x] = top;
}
