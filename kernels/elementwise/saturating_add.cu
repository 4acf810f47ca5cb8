// Saturating addition: on overflow the sum sticks at the largest or smallest value.
// Overflow happened when both inputs differ in sign from the wrapped sum.
extern "C" __global__ void saturating_add(const int* a, const int* b, int* c)
{
    int i = threadIdx.x;
    int x = a[i];
    int y = b[i];
    int sum = (int)((unsigned)x + (unsigned)y);
    int limit = (x >> 31) ^ 0x7fffffff;
    c[i] = ((x ^ sum) & (y ^ sum)) < 0 ? limit : sum;
}
