// Two reductions share one loop: the minimum and the maximum.
extern "C" __global__ void min_max(const int* x, int* smallest, int* largest)
{
    __shared__ int low[32];
    __shared__ int high[32];
    int t = threadIdx.x;
    low[t] = high[t] = x[t];
    __syncthreads();
    #pragma unroll 1
    for (int step = 16; step > 0; step >>= 1) {
        if (t < step) {
            low[t] = min(low[t], low[t + step]);
            high[t] = max(high[t], high[t + step]);
        }
        __syncthreads();
    }
    if (t == 0) {
        *smallest = low[0];
        *largest = high[0];
    }
}
