// Three shifts by a variable: left, right with zeros, right with copies of the sign.
extern "C" __global__ void shifts(const int* x, const unsigned* by, int* left, unsigned* logical, int* arithmetic)
{
    int i = threadIdx.x;
    int v = x[i];
    left[i] = (unsigned)v << by[i];
    logical[i] = (unsigned)v >> by[i];
    arithmetic[i] = v >> by[i];
}
