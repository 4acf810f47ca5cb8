// A warp needs no shared memory to add up: lanes hand values down with a shuffle.
extern "C" __global__ void warp_sum(const int* x, int* sum)
{
    int v = x[threadIdx.x];
    #pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, step);
    if (threadIdx.x == 0)
        *sum = v;
}
