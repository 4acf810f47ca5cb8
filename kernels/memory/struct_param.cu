// A structure as a kernel parameter: its fields are read from parameter memory.
struct Settings {
    int scale;
    int shift;
    int limit;
    int n;
};

extern "C" __global__ void struct_param(Settings p, const int* x, int* y)
{
    int t = threadIdx.x;
    if (t < p.n)
        y[t] = min(x[t] * p.scale + p.shift, p.limit);
}
