// A structure as a kernel parameter: its fields are read from parameter memory.
// The launch passes its eight bytes as one 64-bit number, the first field lowest.
struct Settings {
    short scale;
    short shift;
    int limit;
};

extern "C" __global__ void struct_param(Settings p, const int* x, int* y)
{
    int t = threadIdx.x;
    y[t] = min(x[t] * p.scale + p.shift, p.limit);
}
