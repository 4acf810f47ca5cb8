// Bitonic sort: a fixed network of compare-and-swap steps, so no thread waits on the data.
extern "C" __global__ void bitonic_sort(const int* x, int* y)
{
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    #pragma unroll 1
    for (int k = 2; k <= 32; k <<= 1) {
        #pragma unroll 1
        for (int j = k >> 1; j > 0; j >>= 1) {
            int p = t ^ j;
            if (p > t) {
                int a = s[t];
                int b = s[p];
                if ((a > b) == ((t & k) == 0)) {
                    s[t] = b;
                    s[p] = a;
                }
            }
            __syncthreads();
        }
    }
    y[t] = s[t];
}
