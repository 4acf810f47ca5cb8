// Each warp scans its half; the second warp then adds the total of the first.
extern "C" __global__ void block_scan(const int* x, int* y)
{
    __shared__ int total[2];
    int t = threadIdx.x;
    int lane = t & 31;
    int v = x[t];
    #pragma unroll 1
    for (int d = 1; d < 32; d <<= 1) {
        int left = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d)
            v += left;
    }
    if (lane == 31)
        total[t >> 5] = v;
    __syncthreads();
    if (t >= 32)
        v += total[0];
    y[t] = v;
}
