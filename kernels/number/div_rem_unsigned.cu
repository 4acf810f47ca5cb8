// Unsigned division over the whole 32-bit range.
extern "C" __global__ void div_rem_unsigned(const unsigned* a, const unsigned* b, unsigned* q, unsigned* r)
{
    int i = threadIdx.x;
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
