// Rank sort: a number's place is how many are smaller, or equal and earlier.
extern "C" __global__ void rank_sort(const int* x, int* y, int n)
{
    int t = threadIdx.x;
    int v = x[t];
    int rank = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i)
        rank += x[i] < v || (x[i] == v && i < t);
    y[rank] = v;
}
