// Sorts up or down: a number's place is how many come before it, equal ones in their order.
extern "C" __global__ void rank_order(const int* x, int* y, int descending, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int rank = 0;
    #pragma unroll 1
    for (int k = 0; k < n; ++k) {
        int w = x[k];
        rank += (descending ? w > v : w < v) || (w == v && k < i);
    }
    y[rank] = v;
}
