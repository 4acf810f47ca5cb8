// Hillis-Steele inclusive scan: in round d every thread adds the value 2^d places before it.
// The two barriers separate all reads of a round from all of its writes.
extern "C" __global__ void hillis_steele(const int* x, int* y)
{
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    #pragma unroll 1
    for (int d = 1; d < 32; d <<= 1) {
        int left = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += left;
        __syncthreads();
    }
    y[t] = s[t];
}
