// Three classics: isolate the lowest set bit, test for a power of two, take the sign.
extern "C" __global__ void bit_tricks(const int* x, int* lowest, int* power_of_two, int* sign)
{
    int i = threadIdx.x;
    unsigned v = x[i];
    lowest[i] = v & (0u - v);
    power_of_two[i] = v != 0 && (v & (v - 1)) == 0;
    sign[i] = ((int)v > 0) - ((int)v < 0);
}
