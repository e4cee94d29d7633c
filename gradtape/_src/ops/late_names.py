"""Names of the families of ops that `late.py` imports. Written by tools/late_ops.py: `make stubs`."""

# For each family: names in `ops`, of rows, in public.
FAMILIES: dict[str, dict[str, str]] = {
    "activations": {
        "ops": "elu gelu gelu_op gelu_slope gelu_tanh_op leaky_relu leaky_relu_grad leaky_relu_op relu relu6 relu_grad selu sigmoid sigmoid_grad silu silu_op softplus softsign",
        "rows": "elu gelu gelu_slope gelu_tanh leaky_relu leaky_relu_grad relu relu6 relu_grad selu sigmoid sigmoid_grad silu softplus softsign",
        "public": "math.sigmoid math.softplus nn.elu nn.gelu nn.leaky_relu nn.relu nn.relu6 nn.selu nn.sigmoid nn.silu nn.softplus nn.softsign nn.swish sigmoid",
    },
    "attention": {
        "ops": "scaled_dot_product_attention",
        "rows": "attention attention_grad",
        "public": "nn.scaled_dot_product_attention",
    },
    "batchnorm": {
        "ops": "batch_norm_op layer_norm_op rms_norm_op",
        "rows": "batch_norm batch_norm_grad layer_norm layer_norm_grad rms_norm rms_norm_grad",
        "public": "",
    },
    "candidates": {
        "ops": "candidate_sampler nce_loss sampled_softmax_loss",
        "rows": "candidate_sampler",
        "public": "nn.all_candidate_sampler nn.compute_accidental_hits nn.fixed_unigram_candidate_sampler nn.learned_unigram_candidate_sampler nn.nce_loss nn.sampled_softmax_loss random.all_candidate_sampler random.fixed_unigram_candidate_sampler random.learned_unigram_candidate_sampler random.log_uniform_candidate_sampler random.uniform_candidate_sampler",
    },
    "clipping": {
        "ops": "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm",
        "rows": "",
        "public": "clip_by_global_norm clip_by_norm clip_by_value compat.v1.clip_by_average_norm linalg.global_norm",
    },
    "combinations": {
        "ops": "nextafter polyval scalar_mul",
        "rows": "nextafter",
        "public": "guarantee_const identity_n math.accumulate_n math.nextafter math.polyval math.reciprocal_no_nan math.scalar_mul math.softsign scalar_mul tuple unravel_index",
    },
    "conv": {
        "ops": "",
        "rows": "conv conv_filter conv_input",
        "public": "",
    },
    "conv_general": {
        "ops": "conv_general extract_volume_patches",
        "rows": "",
        "public": "conv extract_volume_patches",
    },
    "convolutions": {
        "ops": "atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input separable_conv2d",
        "rows": "",
        "public": "nn.atrous_conv2d nn.atrous_conv2d_transpose nn.conv1d nn.conv1d_transpose nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.conv_transpose nn.convolution nn.depthwise_conv2d nn.depthwise_conv2d_backprop_filter nn.depthwise_conv2d_backprop_input nn.separable_conv2d",
    },
    "ctc": {
        "ops": "collapse_repeated ctc_loss ctc_unique_labels",
        "rows": "ctc_loss ctc_loss_grad",
        "public": "nn.collapse_repeated nn.ctc_loss nn.ctc_unique_labels",
    },
    "ctc_decode": {
        "ops": "",
        "rows": "ctc_beam_search",
        "public": "",
    },
    "einsum": {
        "ops": "einsum",
        "rows": "",
        "public": "einsum linalg.einsum",
    },
    "embedding": {
        "ops": "embedding_lookup",
        "rows": "",
        "public": "nn.embedding_lookup",
    },
    "exchange": {
        "ops": "from_dlpack to_dlpack",
        "rows": "",
        "public": "experimental.dlpack.from_dlpack experimental.dlpack.to_dlpack",
    },
    "fft": {
        "ops": "fft_of frames_of irfft_of overlap_add rfft_of",
        "rows": "fft frames irfft overlap_add rfft",
        "public": "",
    },
    "fractional": {
        "ops": "fractional_avg_pool fractional_max_pool with_space_to_batch",
        "rows": "",
        "public": "nn.fractional_avg_pool nn.fractional_max_pool nn.with_space_to_batch",
    },
    "generator": {
        "ops": "",
        "rows": "",
        "public": "random.experimental.Algorithm random.experimental.Generator random.experimental.create_rng_state random.experimental.get_global_generator random.experimental.set_global_generator",
    },
    "linalg_banded": {
        "ops": "banded_triangular_solve tridiagonal_matmul tridiagonal_solve",
        "rows": "banded_triangular_solve tridiagonal_solve",
        "public": "linalg.banded_triangular_solve linalg.tridiagonal_matmul linalg.tridiagonal_solve",
    },
    "linalg_factor": {
        "ops": "cholesky cholesky_solve logdet lu lu_matrix_inverse lu_reconstruct lu_solve qr",
        "rows": "cholesky lu qr",
        "public": "linalg.cholesky linalg.cholesky_solve linalg.logdet linalg.lu linalg.lu_matrix_inverse linalg.lu_reconstruct linalg.lu_solve linalg.qr",
    },
    "linalg_functions": {
        "ops": "expm logm sqrtm",
        "rows": "expm logm matrix_function_tangent sqrtm",
        "public": "linalg.expm linalg.logm linalg.sqrtm matrix_square_root",
    },
    "linalg_lstsq": {
        "ops": "lstsq pinv",
        "rows": "pinv",
        "public": "linalg.lstsq linalg.pinv",
    },
    "linalg_solve": {
        "ops": "det inv slogdet solve triangular_solve",
        "rows": "det inv slogdet solve triangular_solve",
        "public": "linalg.det linalg.inv linalg.slogdet linalg.solve linalg.triangular_solve",
    },
    "linalg_spectral": {
        "ops": "eig eigh eigh_tridiagonal eigvals eigvalsh matrix_rank svd",
        "rows": "eig eig_complex eigh eigh_complex eigvals eigvalsh svd svd_complex svdvals",
        "public": "eig eigvals linalg.eig linalg.eigh linalg.eigh_tridiagonal linalg.eigvals linalg.eigvalsh linalg.matrix_rank linalg.svd",
    },
    "losses": {
        "ops": "compute_average_loss l2_loss log_poisson_loss scale_regularization_loss sigmoid_cross_entropy_with_logits sigmoid_xent softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits",
        "rows": "sigmoid_xent",
        "public": "nn.compute_average_loss nn.l2_loss nn.log_poisson_loss nn.scale_regularization_loss nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits nn.sparse_softmax_cross_entropy_with_logits nn.weighted_cross_entropy_with_logits",
    },
    "moments": {
        "ops": "moments moments_op normalize_moments sufficient_statistics weighted_moments",
        "rows": "moments",
        "public": "nn.moments nn.normalize_moments nn.sufficient_statistics nn.weighted_moments",
    },
    "nn": {
        "ops": "bias_add crelu dropout l2_normalize log_sigmoid",
        "rows": "dropout",
        "public": "linalg.l2_normalize math.l2_normalize math.log_sigmoid nn.bias_add nn.crelu nn.dropout nn.experimental.general_dropout nn.experimental.stateless_dropout nn.l2_normalize",
    },
    "normalization": {
        "ops": "batch_norm batch_norm_with_global_normalization batch_normalization fused_batch_norm group_norm layer_norm local_response_normalization rms_norm",
        "rows": "",
        "public": "compat.v1.nn.fused_batch_norm nn.batch_norm nn.batch_norm_with_global_normalization nn.batch_normalization nn.group_norm nn.layer_norm nn.local_response_normalization nn.lrn nn.rms_norm",
    },
    "norms": {
        "ops": "norm normalize reduce_euclidean_norm",
        "rows": "root",
        "public": "linalg.norm linalg.normalize math.reduce_euclidean_norm norm",
    },
    "patches": {
        "ops": "batch_to_space depth_to_space dilation2d erosion2d patches required_space_to_batch_paddings space_to_batch space_to_depth unpatches",
        "rows": "patches unpatches",
        "public": "batch_to_space nn.depth_to_space nn.dilation2d nn.erosion2d nn.space_to_batch nn.space_to_depth required_space_to_batch_paddings space_to_batch space_to_batch_nd",
    },
    "philox": {
        "ops": "bits categorical groups_of normal permutation recorded truncated_normal uniform uniform_int",
        "rows": "",
        "public": "",
    },
    "pooling": {
        "ops": "avg_pool1d avg_pool2d avg_pool3d avg_pool_nd max_pool1d max_pool2d max_pool3d max_pool_nd max_pool_with_argmax pool",
        "rows": "avg_pool avg_unpool max_pool max_pool_argmax max_pool_pick max_unpool",
        "public": "nn.avg_pool nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.max_pool nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.max_pool_with_argmax nn.pool",
    },
    "quantization": {
        "ops": "",
        "rows": "",
        "public": "quantization.fake_quant_with_min_max_args quantization.fake_quant_with_min_max_args_gradient quantization.fake_quant_with_min_max_vars quantization.fake_quant_with_min_max_vars_gradient quantization.fake_quant_with_min_max_vars_per_channel quantization.fake_quant_with_min_max_vars_per_channel_gradient quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2",
    },
    "random": {
        "ops": "random_bits random_normal random_uniform random_uniform_int truncated_normal_op",
        "rows": "categorical random_binomial random_bits random_gamma random_normal random_poisson random_shuffle_perm random_uniform random_uniform_int stateless_state truncated_normal",
        "public": "random.beta random.categorical random.gamma random.normal random.poisson random.shuffle random.stateless_uniform random.truncated_normal random.uniform",
    },
    "runs": {
        "ops": "",
        "rows": "add_runs take_runs",
        "public": "",
    },
    "scan": {
        "ops": "cumprod cumsum cumulative_logsumexp linear_recurrence",
        "rows": "cumlogsumexp cumprod cumsum linear_recurrence",
        "public": "cumsum math.cumprod math.cumsum math.cumulative_logsumexp",
    },
    "segments": {
        "ops": "dynamic_partition dynamic_stitch segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum",
        "rows": "unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum",
        "public": "dynamic_partition dynamic_stitch math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum math.unsorted_segment_max math.unsorted_segment_mean math.unsorted_segment_min math.unsorted_segment_prod math.unsorted_segment_sqrt_n math.unsorted_segment_sum",
    },
    "selection": {
        "ops": "boolean_mask boolean_unmask invert_permutation one_hot sequence_mask unique unique_with_counts where where_indices",
        "rows": "boolean_mask boolean_unmask invert_permutation one_hot unique where_indices",
        "public": "boolean_mask math.invert_permutation one_hot sequence_mask unique unique_with_counts where",
    },
    "sequences": {
        "ops": "reverse_sequence",
        "rows": "",
        "public": "approx_top_k debugging.is_non_decreasing debugging.is_strictly_increasing math.approx_max_k math.approx_min_k math.is_non_decreasing math.is_strictly_increasing nn.approx_max_k nn.approx_min_k nn.isotonic_regression reverse_sequence",
    },
    "sobol": {
        "ops": "",
        "rows": "",
        "public": "math.sobol_sample",
    },
    "softmax": {
        "ops": "log_softmax log_softmax_grad softmax softmax_grad softmax_xent sparse_softmax_xent",
        "rows": "log_softmax log_softmax_grad softmax softmax_grad softmax_xent sparse_softmax_xent",
        "public": "math.log_softmax math.softmax nn.log_softmax nn.softmax",
    },
    "sort": {
        "ops": "argsort in_top_k searchsorted sort top_k",
        "rows": "argsort searchsorted sort top_k",
        "public": "argsort math.in_top_k math.top_k nn.in_top_k nn.top_k searchsorted sort",
    },
    "sparse_products": {
        "ops": "",
        "rows": "sparse_dots sparse_matmul sparse_matmul_rows sparse_rows",
        "public": "",
    },
    "special": {
        "ops": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc digamma erfcinv erfinv gamma_sample_grad igamma igammac lbeta lgamma ndtri polygamma zeta",
        "rows": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 betainc dawsn digamma erfcinv erfinv expint fresnel_cos fresnel_sin gamma_sample_grad igamma igamma_grad_a1 igamma_grad_a2 igamma_grad_a3 igamma_grad_a4 igammac lgamma ndtri polygamma spence zeta",
        "public": "math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.betainc math.digamma math.erfcinv math.erfinv math.igamma math.igammac math.lbeta math.lgamma math.ndtri math.polygamma math.special.bessel_i0 math.special.bessel_i0e math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0 math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence math.zeta",
    },
    "stateless": {
        "ops": "stateless_normal",
        "rows": "",
        "public": "random.experimental.index_shuffle random.experimental.stateless_fold_in random.experimental.stateless_shuffle random.experimental.stateless_split random.fold_in random.split random.stateless_binomial random.stateless_categorical random.stateless_gamma random.stateless_normal random.stateless_parameterized_truncated_normal random.stateless_poisson random.stateless_truncated_normal random_index_shuffle",
    },
    "statistics": {
        "ops": "bincount confusion_matrix count_nonzero histogram_fixed_width histogram_fixed_width_bins reduce_std reduce_variance zero_fraction",
        "rows": "",
        "public": "histogram_fixed_width histogram_fixed_width_bins math.bincount math.confusion_matrix math.count_nonzero math.reduce_std math.reduce_variance math.zero_fraction nn.zero_fraction",
    },
    "windows": {
        "ops": "",
        "rows": "",
        "public": "",
    },
}
