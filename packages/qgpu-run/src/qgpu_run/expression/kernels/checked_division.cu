// Quotient or remainder, rounded toward zero (0, 1) or down (2, 3); reports a divisor of zero.
extern "C" __global__ void checked_division(
    const int* a, const int* b, int* c, int* rest, int* error, int operation, int step_a, int step_b,
    int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    int code = y == 0 ? 2 : 0;
    if (y == -1 && x == -2147483647 - 1) {
        // The remainder is 0; the quotient alone does not fit.
        code = operation % 2 == 0 ? 1 : 0;
        y = 1;
    }
    if (y == 0)
        y = 1;
    int q = x / y;
    int r = x % y;
    if (operation >= 2 && r != 0 && (r ^ y) < 0) {
        q -= 1;
        r += y;
    }
    c[i] = operation % 2 == 0 ? q : r;
    if (operation == 0)
        rest[i] = r;
    if (code != 0)
        *error = code;
}
