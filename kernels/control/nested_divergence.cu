// Nested branches with side effects: lanes part twice and rejoin in the reverse order.
extern "C" __global__ void nested_divergence(const int* x, int* y)
{
    int t = threadIdx.x;
    int v = x[t];
    if (v & 1) {
        y[t] = 1;
        if (t < 16)
            y[t] += v * 3;
        else
            y[t] -= v;
        v += 10;
    } else {
        y[t] = 2;
        if (v > 10)
            y[t] += v << 2;
        v -= 10;
    }
    y[t] += v;
}
