// Horner's rule: ((c3 x + c2) x + c1) x + c0, in wrapping 32-bit arithmetic.
extern "C" __global__ void polynomial(const int* x, const int* coef, int* y)
{
    int i = threadIdx.x;
    unsigned v = x[i];
    unsigned acc = coef[3];
    acc = acc * v + coef[2];
    acc = acc * v + coef[1];
    acc = acc * v + coef[0];
    y[i] = acc;
}
