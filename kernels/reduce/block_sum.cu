// Two levels: each of four warps sums with shuffles, then the first warp adds four parts.
extern "C" __global__ void block_sum(const int* x, int* sum)
{
    __shared__ int part[4];
    int t = threadIdx.x;
    int v = x[t];
    #pragma unroll 1
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, step);
    if ((t & 31) == 0)
        part[t >> 5] = v;
    __syncthreads();
    if (t == 0)
        *sum = part[0] + part[1] + part[2] + part[3];
}
