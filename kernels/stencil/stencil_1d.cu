// y[i] = x[i-1] + 2 x[i] + x[i+1], zero outside. A block keeps its part plus one cell on
// each side (the halo) in shared memory.
extern "C" __global__ void stencil_1d(const int* x, int* y, int n)
{
    __shared__ int s[18];
    int t = threadIdx.x;
    int i = blockIdx.x * 16 + t;
    s[t + 1] = x[i];
    if (t == 0)
        s[0] = i > 0 ? x[i - 1] : 0;
    if (t == 15)
        s[17] = i + 1 < n ? x[i + 1] : 0;
    __syncthreads();
    y[i] = s[t] + 2 * s[t + 1] + s[t + 2];
}
