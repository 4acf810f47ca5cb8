// Pascal's triangle: n times, each thread adds its left neighbour's value.
extern "C" __global__ void binomial_row(unsigned* row, int n)
{
    __shared__ unsigned s[16];
    int t = threadIdx.x;
    unsigned v = t == 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        s[t] = v;
        __syncthreads();
        if (t > 0)
            v += s[t - 1];
        __syncthreads();
    }
    row[t] = v;
}
