// Sorts up or down: a number's place is how many come before it, equal ones in their order.
extern "C" __global__ void rank_order(const int* x, int* y, int descending, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int rank = 0;
    unsigned k = 0;
    #pragma unroll 1
    do {
        int w = *(const int*)((const char*)x + k);
        rank += (descending ? w > v : w < v) || (w == v && k < 4 * i);
        k += 4;
    } while (k < 4 * n);
    y[rank] = v;
}
