// Elementary cellular automaton: neighbours come from shuffles round the ring of lanes,
// and the rule number is the truth table.
extern "C" __global__ void rule_110(const int* cells, int* after, int steps)
{
    int lane = threadIdx.x;
    int v = cells[lane];
    #pragma unroll 1
    for (int s = 0; s < steps; ++s) {
        int left = __shfl_sync(0xffffffffu, v, (lane + 31) & 31);
        int right = __shfl_sync(0xffffffffu, v, (lane + 1) & 31);
        v = (110 >> (left * 4 + v * 2 + right)) & 1;
    }
    after[lane] = v;
}
