// Sieve: thread t crosses out the multiples of t + 2. Several threads may write the same 1.
extern "C" __global__ void sieve(int* composite, int n)
{
    int p = threadIdx.x + 2;
    #pragma unroll 1
    for (int m = p * p; m < n; m += p)
        composite[m] = 1;
}
