// A loop left from the middle or at the end, whichever happens first.
extern "C" __global__ void two_exits(const unsigned* x, unsigned* y)
{
    unsigned v = x[threadIdx.x];
    unsigned n = 0;
    #pragma unroll 1
    do {
        if ((v & 7) == 5) {
            n += 1000;
            break;
        }
        v = v * 5 / 7;
        ++n;
    } while (v > 3 && n < 6);
    y[threadIdx.x] = n * 10000 + v;
}
