// Each block counts in its own shared copy; only 16 totals per block go to global memory.
extern "C" __global__ void histogram_shared(const unsigned* x, unsigned* bins)
{
    __shared__ unsigned local[16];
    int t = threadIdx.x;
    if (t < 16)
        local[t] = 0;
    __syncthreads();
    atomicAdd(&local[x[blockIdx.x * 32 + t]], 1u);
    __syncthreads();
    if (t < 16)
        atomicAdd(&bins[t], local[t]);
}
