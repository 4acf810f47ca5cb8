// A function kept out of line: it is called twice, the second time by some lanes only.
__device__ __noinline__ int cube_plus(int v, int add)
{
    return v * v * v + add;
}

extern "C" __global__ void function_call(const int* x, int* y)
{
    int t = threadIdx.x;
    int v = cube_plus(x[t], 1);
    if (v < 0)
        v = cube_plus(t, v);
    y[t] = v;
}
