// Sum a row of six: negatives are skipped, a zero ends the row.
extern "C" __global__ void break_continue(const int* x, int* sum)
{
    int s = 0;
    #pragma unroll 1
    for (int i = 0; i < 6; ++i) {
        int v = x[threadIdx.x * 6 + i];
        if (v < 0)
            continue;
        if (v == 0)
            break;
        s += v;
    }
    sum[threadIdx.x] = s;
}
