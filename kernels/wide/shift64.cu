// 64-bit shifts by a variable amount, which may move whole words.
extern "C" __global__ void shift64(const long long* x, const int* by, long long* left, unsigned long long* logical, long long* arithmetic)
{
    int i = threadIdx.x;
    int n = by[i];
    left[i] = (unsigned long long)x[i] << n;
    logical[i] = (unsigned long long)x[i] >> n;
    arithmetic[i] = x[i] >> n;
}
