// A tree sum by two warps: the barrier makes the warps wait for each other.
extern "C" __global__ void tree_sum(const int* x, int* sum)
{
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    #pragma unroll 1
    for (int step = 32; step > 0; step >>= 1) {
        __syncthreads();
        if (t < step)
            part[t] += part[t + step];
    }
    if (t == 0)
        *sum = part[0];
}
