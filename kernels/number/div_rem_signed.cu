// C division rounds toward zero, and the remainder takes the sign of the dividend.
extern "C" __global__ void div_rem_signed(const int* a, const int* b, int* q, int* r)
{
    int i = threadIdx.x;
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
