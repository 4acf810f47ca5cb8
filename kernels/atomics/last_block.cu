// Blocks cannot wait for each other, but the last one to finish can complete the job.
// The fence makes a block's partial sum visible before it reports itself done.
extern "C" __global__ void last_block(const int* x, volatile int* part, unsigned* done, int* sum)
{
    __shared__ int s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        part[blockIdx.x] = s;
        __threadfence();
        if (atomicAdd(done, 1u) == gridDim.x - 1) {
            int total = 0;
            #pragma unroll 1
            for (int b = 0; b < gridDim.x; ++b)
                total += part[b];
            *sum = total;
        }
    }
}
