// The same step-doubling scan in registers: shuffle-up replaces shared memory.
extern "C" __global__ void warp_scan(const int* x, int* y)
{
    int lane = threadIdx.x;
    int v = x[lane];
    #pragma unroll 1
    for (int d = 1; d < 32; d <<= 1) {
        int left = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d)
            v += left;
    }
    y[lane] = v;
}
