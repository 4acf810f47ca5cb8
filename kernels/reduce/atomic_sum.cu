// The simplest reduction: everybody adds into the same word with an atomic.
extern "C" __global__ void atomic_sum(const int* x, int n, int* sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(sum, x[i]);
}
