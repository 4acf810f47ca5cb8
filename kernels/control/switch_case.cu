// A switch on data: lanes with different opcodes take different cases, one falls through.
extern "C" __global__ void switch_case(const int* op, const int* a, const int* b, int* y)
{
    int t = threadIdx.x;
    int x = a[t];
    int z = b[t];
    int r;
    switch (op[t]) {
    case 0: r = x + z; break;
    case 1: r = x - z; break;
    case 2: r = x * z; break;
    case 3: r = x << z; break;
    case 4: x = -x; // fall through
    case 5: r = x ^ z; break;
    case 6: r = x > z; break;
    case 7: r = min(x, z); break;
    default: r = 999; break;
    }
    y[t] = r;
}
