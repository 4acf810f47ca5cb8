// Four warps rotate an array in place, twice; reads and writes are kept apart by barriers.
extern "C" __global__ void four_warps_rotate(const int* x, int* y, int by)
{
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    #pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        __syncthreads();
        int v = s[(t + by) & 127];
        __syncthreads();
        s[t] = v;
    }
    y[t] = s[t];
}
