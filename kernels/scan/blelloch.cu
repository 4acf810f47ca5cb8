// Blelloch's exclusive scan: 16 threads build a sum tree over 32 values, then walk it down.
extern "C" __global__ void blelloch(const int* x, int* y)
{
    __shared__ int s[32];
    int t = threadIdx.x;
    s[2 * t] = x[2 * t];
    s[2 * t + 1] = x[2 * t + 1];
    int stride = 1;
    #pragma unroll 1
    for (int d = 16; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            int hi = stride * (2 * t + 2) - 1;
            s[hi] += s[hi - stride];
        }
        stride <<= 1;
    }
    if (t == 0)
        s[31] = 0;
    #pragma unroll 1
    for (int d = 1; d < 32; d <<= 1) {
        stride >>= 1;
        __syncthreads();
        if (t < d) {
            int hi = stride * (2 * t + 2) - 1;
            int left = s[hi - stride];
            s[hi - stride] = s[hi];
            s[hi] += left;
        }
    }
    __syncthreads();
    y[2 * t] = s[2 * t];
    y[2 * t + 1] = s[2 * t + 1];
}
