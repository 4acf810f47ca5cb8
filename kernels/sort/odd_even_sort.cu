// Odd-even transposition: bubble sort made parallel, neighbours swap in alternating pairs.
extern "C" __global__ void odd_even_sort(int* x)
{
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    #pragma unroll 1
    for (int round = 0; round < 16; ++round) {
        if ((t & 1) == (round & 1) && t < 15) {
            int a = s[t];
            int b = s[t + 1];
            s[t] = min(a, b);
            s[t + 1] = max(a, b);
        }
        __syncthreads();
    }
    x[t] = s[t];
}
