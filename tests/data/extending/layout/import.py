from fuseflow.sparsity.layouts.bitmap import Bitmap
