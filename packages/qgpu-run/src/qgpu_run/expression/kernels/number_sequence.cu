// Factorial (0) or Fibonacci number (1); reports negative places and results that do not fit.
extern "C" __global__ void number_sequence(
    const int* x, int* y, int* error, int operation, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int last = operation == 0 ? 12 : 46;
    if (v < 0)
        *error = 3;
    if (v > last)
        *error = 1;
    int m = min(v, last);
    unsigned r = operation == 0 ? 1 : 0;
    if (operation == 0) {
        #pragma unroll 1
        for (; m > 1; --m)
            r *= m;
    } else {
        // F(2k) = F(k) (2 F(k+1) - F(k)) and F(2k+1) = F(k)^2 + F(k+1)^2, from the highest bit on.
        unsigned next = 1;
        #pragma unroll 1
        for (int bit = 32; bit != 0; bit >>= 1) {
            unsigned even = r * (2 * next - r);
            unsigned odd = r * r + next * next;
            r = m & bit ? odd : even;
            next = m & bit ? even + odd : odd;
        }
    }
    y[i] = r;
}
