"""`tf.signal`: Fourier and cosine transforms, windows, frames, short-time spectra, mel scales."""

from gradtape._src.base.calls import one_call_each
from gradtape._src.public import absent as _absent
from gradtape.signal.cosine import dct as dct
from gradtape.signal.cosine import idct as idct
from gradtape.signal.fourier import fft as fft
from gradtape.signal.fourier import fft2d as fft2d
from gradtape.signal.fourier import fft3d as fft3d
from gradtape.signal.fourier import fftnd as fftnd
from gradtape.signal.fourier import fftshift as fftshift
from gradtape.signal.fourier import ifft as ifft
from gradtape.signal.fourier import ifft2d as ifft2d
from gradtape.signal.fourier import ifft3d as ifft3d
from gradtape.signal.fourier import ifftnd as ifftnd
from gradtape.signal.fourier import ifftshift as ifftshift
from gradtape.signal.fourier import irfft as irfft
from gradtape.signal.fourier import irfft2d as irfft2d
from gradtape.signal.fourier import irfft3d as irfft3d
from gradtape.signal.fourier import irfftnd as irfftnd
from gradtape.signal.fourier import rfft as rfft
from gradtape.signal.fourier import rfft2d as rfft2d
from gradtape.signal.fourier import rfft3d as rfft3d
from gradtape.signal.fourier import rfftnd as rfftnd
from gradtape.signal.frames import frame as frame
from gradtape.signal.frames import overlap_and_add as overlap_and_add
from gradtape.signal.mel import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from gradtape.signal.mel import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from gradtape.signal.spectral import inverse_mdct as inverse_mdct
from gradtape.signal.spectral import inverse_stft as inverse_stft
from gradtape.signal.spectral import inverse_stft_window_fn as inverse_stft_window_fn
from gradtape.signal.spectral import mdct as mdct
from gradtape.signal.spectral import stft as stft
from gradtape.signal.windows import hamming_window as hamming_window
from gradtape.signal.windows import hann_window as hann_window
from gradtape.signal.windows import kaiser_bessel_derived_window as kaiser_bessel_derived_window
from gradtape.signal.windows import kaiser_window as kaiser_window
from gradtape.signal.windows import vorbis_window as vorbis_window

one_call_each(globals())

__getattr__, __dir__ = _absent.of("signal")
