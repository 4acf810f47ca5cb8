// Counting sort of keys 0..7: count with shared atomics, then thread k writes all copies of k.
extern "C" __global__ void counting_sort(const int* keys, int* sorted)
{
    __shared__ int count[8];
    int t = threadIdx.x;
    if (t < 8)
        count[t] = 0;
    __syncthreads();
    atomicAdd(&count[keys[t]], 1);
    atomicAdd(&count[keys[t + 16]], 1);
    __syncthreads();
    if (t < 8) {
        int at = 0;
        #pragma unroll 1
        for (int k = 0; k < t; ++k)
            at += count[k];
        int end = at + count[t];
        #pragma unroll 1
        while (at < end)
            sorted[at++] = t;
    }
}
