// Returning early switches a thread off for good; the others go on.
extern "C" __global__ void early_return(const int* x, int* y, int n)
{
    int t = threadIdx.x;
    if (t >= n)
        return;
    int v = x[t];
    if (v < 0) {
        y[t] = -1;
        return;
    }
    #pragma unroll 1
    for (int i = 0; i < 4; ++i) {
        if (v == i * 3) {
            y[t] = 100 + i;
            return;
        }
        y[t] += v;
    }
}
