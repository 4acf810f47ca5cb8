// Four warps, the last one half empty, rotate an array in place, twice. Barriers keep the reads
// and the writes apart.
extern "C" __global__ void four_warps_rotate(const int* x, int* y, int by)
{
    __shared__ int s[112];
    int t = threadIdx.x;
    s[t] = x[t];
    int from = t + by;
    if (from >= 112)
        from -= 112;
    #pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        __syncthreads();
        int v = s[from];
        __syncthreads();
        s[t] = v;
    }
    y[t] = s[t];
}
