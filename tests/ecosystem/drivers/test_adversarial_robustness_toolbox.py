"""The Adversarial Robustness Toolbox: attacks on a small network through both of its classifiers, and defences.

Weights and inputs are drawn by NumPy; the numbers are those of TensorFlow 2.21.
"""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("art")

from art import defences, metrics  # noqa: E402
from art.attacks import evasion, extraction, inference  # noqa: E402
from art.estimators.classification import (  # noqa: E402
    EnsembleClassifier,
    KerasClassifier,
    TensorFlowV2Classifier,
)
from art.preprocessing.expectation_over_transformation import EoTImageRotationTensorFlow  # noqa: E402

PIXELS, CLASSES = 8, 4


@pytest.fixture(autouse=True)
def seeds():
    np.random.seed(5)
    tf.keras.utils.set_random_seed(5)


def network(logits=True, seed=1):
    """A small convolutional network with weights of NumPy's."""
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((PIXELS, PIXELS, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(2),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(CLASSES, activation=None if logits else "softmax"),
        ]
    )
    draw = np.random.RandomState(seed)
    model.set_weights(
        [draw.normal(size=w.shape, scale=0.7 if w.ndim > 1 else 0.1) for w in model.get_weights()]
    )
    return model


def images(n=6):
    return np.random.RandomState(2).uniform(size=(n, PIXELS, PIXELS, 1)).astype(np.float32)


def with_tape(**kwargs):
    return TensorFlowV2Classifier(
        model=network(),
        nb_classes=CLASSES,
        input_shape=(PIXELS, PIXELS, 1),
        loss_object=tf.keras.losses.CategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.Adam(0.01),
        clip_values=(0, 1),
        **kwargs,
    )


def with_keras(seed=1, **kwargs):
    model = network(logits=False, seed=seed)
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    return KerasClassifier(model=model, clip_values=(0, 1), use_logits=False, **kwargs)


CLASSIFIERS = {"tape": with_tape, "keras": with_keras}


def moved(x, adversarial):
    """How much and where images were changed."""
    d = np.asarray(adversarial, np.float64) - x
    return [np.abs(d).max(), np.abs(d).sum(), (d * np.linspace(-1, 1, d.size).reshape(d.shape)).sum()]


def agree(name, found):
    """TensorFlow's numbers are found."""
    np.testing.assert_allclose(np.asarray(found, float).ravel(), EXPECTED[name], rtol=1e-3, atol=2e-5)


QUIET = {"verbose": False}
ATTACKS = {
    "fgsm": lambda c: evasion.FastGradientMethod(c, eps=0.1),
    "fgsm_l2_minimal": lambda c: evasion.FastGradientMethod(c, norm=2, eps=2.0, eps_step=0.2, minimal=True),
    "basic": lambda c: evasion.BasicIterativeMethod(c, eps=0.1, eps_step=0.03, max_iter=5, **QUIET),
    "pgd": lambda c: evasion.ProjectedGradientDescent(c, eps=0.1, eps_step=0.03, max_iter=5, **QUIET),
    "pgd_l2_numpy": lambda c: evasion.ProjectedGradientDescentNumpy(
        c, norm=2, eps=0.8, eps_step=0.3, max_iter=5, **QUIET
    ),
    "momentum": lambda c: evasion.MomentumIterativeMethod(c, eps=0.1, eps_step=0.03, max_iter=5, **QUIET),
    "auto_pgd": lambda c: evasion.AutoProjectedGradientDescent(
        c, eps=0.1, eps_step=0.05, max_iter=4, nb_random_init=1, **QUIET
    ),
    "deepfool": lambda c: evasion.DeepFool(c, max_iter=3, **QUIET),
    "carlini_l2": lambda c: evasion.CarliniL2Method(
        c, max_iter=3, binary_search_steps=2, initial_const=5.0, **QUIET
    ),
    "carlini_linf": lambda c: evasion.CarliniLInfMethod(
        c, max_iter=3, initial_const=1e-2, largest_const=0.2, const_factor=10, decrease_factor=0.5, **QUIET
    ),
    "elastic_net": lambda c: evasion.ElasticNet(
        c, max_iter=3, binary_search_steps=2, initial_const=10.0, **QUIET
    ),
    "jsma": lambda c: evasion.SaliencyMapMethod(c, theta=0.3, gamma=0.1, **QUIET),
    "newtonfool": lambda c: evasion.NewtonFool(c, max_iter=3, **QUIET),
    "virtual": lambda c: evasion.VirtualAdversarialMethod(c, eps=0.3, max_iter=2, finite_diff=0.1, **QUIET),
    "universal": lambda c: evasion.UniversalPerturbation(c, attacker="fgsm", max_iter=1, eps=0.3, **QUIET),
    "square": lambda c: evasion.SquareAttack(c, eps=0.2, max_iter=10, **QUIET),
    "simba": lambda c: evasion.SimBA(c, max_iter=20, epsilon=0.3, **QUIET),
    "spatial": lambda c: evasion.SpatialTransformation(
        c, max_translation=10, num_translations=2, max_rotation=20, num_rotations=2, **QUIET
    ),
    "wasserstein": lambda c: evasion.Wasserstein(
        c, eps=0.3, eps_step=0.1, max_iter=3, conjugate_sinkhorn_max_iter=20, projected_sinkhorn_max_iter=20,
        regularization=100, batch_size=3, **QUIET,
    ),
}  # fmt: skip
BY_QUERIES = {
    "boundary": "tape",
    "hop_skip_jump": "tape",
    "square": "tape",
    "simba": "keras",
    "spatial": "tape",
}
REFUSED = {("momentum", "tape"), ("auto_pgd", "keras"), ("virtual", "tape")}  # by the toolbox itself
CASES = [
    (name, kind)
    for name in ATTACKS
    for kind in ([BY_QUERIES[name]] if name in BY_QUERIES else CLASSIFIERS)
    if (name, kind) not in REFUSED
]


@pytest.mark.parametrize("name, kind", CASES)
def test_attack(name, kind):
    x = images(3)
    agree(f"{name}-{kind}", moved(x, ATTACKS[name](CLASSIFIERS[kind]()).generate(x)))


@pytest.mark.parametrize(
    "attack",
    [
        lambda c: evasion.BoundaryAttack(c, targeted=False, max_iter=2, init_size=100, **QUIET),
        lambda c: evasion.HopSkipJump(c, max_iter=1, max_eval=20, init_eval=5, init_size=100, **QUIET),
    ],
    ids=["boundary", "hop_skip_jump"],
)
def test_attacks_that_draw_anew_each_time(attack):
    """These attacks use random numbers without a seed: their results must only be misclassified."""
    c, x = with_tape(), images(3)
    found = attack(c).generate(x)
    there = np.abs(found - x).max(axis=(1, 2, 3)) > 1e-6
    assert there.any()
    assert np.all((c.predict(found).argmax(1) != c.predict(x).argmax(1))[there])


@pytest.mark.parametrize("rotation", [0.0, 22.5])
def test_adversarial_patch(rotation):
    x, y = images(), np.eye(CLASSES)[[0] * 6]
    attack = evasion.AdversarialPatch(
        with_tape(), rotation_max=rotation, scale_min=0.3, scale_max=0.9, learning_rate=0.5, max_iter=8, batch_size=6,
        patch_shape=(PIXELS, PIXELS, 1), verbose=False,
    )  # fmt: skip
    patch, mask = attack.generate(x, y)
    there = attack.apply_patch(x, scale=0.5, patch_external=patch)
    agree(f"patch {rotation}", [*moved(0.5, patch), mask.sum(), *moved(x, there)])


def test_expectation_over_rotations():
    turned, _ = EoTImageRotationTensorFlow(nb_samples=2, clip_values=(0, 1), angles=20.0).forward(
        tf.constant(images(2)), None
    )
    agree("turned", moved(np.repeat(images(2), 2, axis=0), turned))


def test_targeted_attacks():
    x, y = images(), np.eye(CLASSES)[[0, 1, 2, 3, 0, 1]]
    c = with_tape()
    agree("targeted_fgsm", moved(x, evasion.FastGradientMethod(c, eps=0.1, targeted=True).generate(x, y)))
    pgd = evasion.ProjectedGradientDescent(
        c, eps=0.2, eps_step=0.05, max_iter=5, targeted=True, verbose=False
    )
    agree("targeted_pgd", moved(x, pgd.generate(x, y)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifier(kind, tmp_path):
    c = CLASSIFIERS[kind]()
    x, y = images(), np.eye(CLASSES)[[0, 1, 2, 3, 0, 1]]
    agree(f"predict-{kind}", c.predict(x)[:2])
    agree(f"class_gradient-{kind}", np.abs(c.class_gradient(x)).sum(axis=(0, 2, 3, 4)))
    agree(f"class_gradient_1-{kind}", np.abs(c.class_gradient(x, label=1)).sum())
    agree(f"loss_gradient-{kind}", np.abs(c.loss_gradient(x, y)).sum(axis=(1, 2, 3)))
    agree(f"loss-{kind}", c.compute_loss(x, y, reduction="none") if kind == "tape" else c.compute_loss(x, y))
    agree(f"activations-{kind}", c.get_activations(x, 0, batch_size=6).sum(axis=(1, 2, 3)))
    c.fit(x, y, batch_size=6, nb_epochs=3)
    agree(f"fit-{kind}", c.predict(x)[:2])


def test_adversarial_training():
    c = with_tape()
    x, y = images(12), np.eye(CLASSES)[np.arange(12) % CLASSES]
    trainer = defences.trainer.AdversarialTrainer(c, evasion.FastGradientMethod(c, eps=0.1), ratio=0.5)
    trainer.fit(x, y, batch_size=12, nb_epochs=3)
    agree("trainer", c.predict(x)[:2])


def test_madry_training():
    c = with_tape()
    x, y = images(12), np.eye(CLASSES)[np.arange(12) % CLASSES]
    trainer = defences.trainer.AdversarialTrainerMadryPGD(
        c, nb_epochs=2, batch_size=12, eps=0.1, eps_step=0.05, max_iter=2, num_random_init=0
    )
    trainer.fit(x, y)
    agree("madry", c.predict(x)[:2])


def test_preprocessing_defences():
    x = images()
    pre = defences.preprocessor
    agree("squeezed", pre.FeatureSqueezing(clip_values=(0, 1), bit_depth=2)(x)[0].sum())
    agree("smoothed", pre.SpatialSmoothing(window_size=3)(x)[0].sum())
    agree("smoothed_by_tf", pre.SpatialSmoothingTensorFlowV2(window_size=3)(x)[0].sum())
    agree("labels", pre.LabelSmoothing()(x, np.eye(CLASSES)[[0] * 6])[1][0])
    thermometer = pre.ThermometerEncoding(clip_values=(0, 1), num_space=4)
    agree("thermometer", thermometer(x)[0].sum())
    squeezed = with_tape(preprocessing_defences=[pre.FeatureSqueezing(clip_values=(0, 1), bit_depth=2)])
    agree("squeezed_predict", squeezed.predict(x)[:2])
    agree("squeezed_gradient", np.abs(squeezed.loss_gradient(x, np.eye(CLASSES)[[0] * 6])).sum())
    smoothed = with_tape(preprocessing_defences=[pre.SpatialSmoothingTensorFlowV2(window_size=3)])
    agree("smoothed_gradient", np.abs(smoothed.loss_gradient(x, np.eye(CLASSES)[[0] * 6])).sum())


def test_postprocessing_defences():
    post = defences.postprocessor
    for name, defence in {
        "rounded": post.Rounded(decimals=1),
        "labels": post.ClassLabels(),
        "confidence": post.HighConfidence(cutoff=0.3),
        "sigmoid": post.ReverseSigmoid(beta=1.0, gamma=0.1),
    }.items():
        agree(f"post_{name}", with_keras(postprocessing_defences=defence).predict(images())[:2])


def test_distillation():
    c, student = with_keras(), with_keras(seed=4)
    x = images(12)
    distilled = defences.transformer.evasion.DefensiveDistillation(c, batch_size=12, nb_epochs=2)(x, student)
    agree("distilled", distilled.predict(x)[:2])


def test_detectors_of_poison():
    x, y = images(12), np.eye(CLASSES)[np.arange(12) % CLASSES]
    detector = defences.detector.poison.ActivationDefence(with_keras(), x, y)
    report, clean = detector.detect_poison(nb_clusters=2, nb_dims=2, reduce="PCA")
    assert len(clean) == 12
    agree("activation_defence", [sum(clean)])


def test_copycat_extraction():
    stolen = extraction.CopycatCNN(
        with_keras(), batch_size_fit=12, batch_size_query=12, nb_epochs=2, nb_stolen=12
    ).extract(images(12), thieved_classifier=with_keras())
    assert stolen.predict(images()).shape == (6, CLASSES)


def test_membership_inference():
    attack = inference.membership_inference.MembershipInferenceBlackBoxRuleBased(with_keras())
    agree("membership", attack.infer(images(), np.arange(6) % CLASSES))


def test_model_inversion():
    attack = inference.model_inversion.MIFace(
        with_tape(), max_iter=5, learning_rate=0.1, threshold=1.0, verbose=False
    )
    agree("inversion", attack.infer(None, np.array([0, 1])).sum(axis=(1, 2, 3)))


def test_metrics():
    c = with_tape()
    x = images()
    agree("loss_sensitivity", metrics.loss_sensitivity(c, x, np.eye(CLASSES)[[0] * 6]))
    agree("clever_u", metrics.clever_u(with_keras(), x[0], 3, 4, 5.0, norm=2, pool_factor=3, verbose=False))
    agree("clever_t", metrics.clever_t(with_keras(), x[0], 1, 3, 4, 5.0, norm=2, pool_factor=3))
    agree("robustness", metrics.empirical_robustness(c, x, "fgsm", {"eps_step": 0.1, "eps": 1.0}))


def test_ensemble():
    ensemble = EnsembleClassifier(
        [with_keras(), with_keras()], classifier_weights=np.array([0.25, 0.75]), clip_values=(0, 1)
    )
    x = images()
    agree("ensemble", ensemble.predict(x)[:1])
    agree("ensemble_gradient", np.abs(ensemble.loss_gradient(x, np.eye(CLASSES)[[0] * 6])).sum())


# What TensorFlow 2.21 gives.
EXPECTED = {
    "activation_defence": [8],
    "activations-keras": [51.40874, 59.68643, 50.63073, 63.61355, 66.5326, 51.97705],
    "activations-tape": [51.40874, 59.68643, 50.63073, 63.61355, 66.5326, 51.97705],
    "auto_pgd-tape": [0.1, 16.25021, 0.4710627],
    "basic-keras": [0.1, 14.87217, -0.1125556],
    "basic-tape": [0.1, 14.87217, -0.1125556],
    "carlini_l2-keras": [0.2869757, 6.933745, -0.3356097],
    "carlini_l2-tape": [0.3156779, 7.544046, -0.1305917],
    "carlini_linf-keras": [0, 0, 0],
    "carlini_linf-tape": [0, 0, 0],
    "class_gradient-keras": [21.54639, 1.537914, 25.01099, 7.542597],
    "class_gradient-tape": [143.7345, 169.9877, 122.9118, 177.7572],
    "class_gradient_1-keras": [1.537914],
    "class_gradient_1-tape": [169.9877],
    "clever_t": [0.4738577],
    "clever_u": [0.1890274],
    "deepfool-keras": [0.4351293, 9.943077, 0.0816651],
    "deepfool-tape": [0.2067066, 5.626245, -0.0296405],
    "distilled": [0.06331135, 0.9212373, 0.01544013, 1.122469e-05, 0.1424777, 0.7704706, 0.08677302, 0.0002786718],
    "elastic_net-keras": [0.2615161, 6.79992, 0.1010676],
    "elastic_net-tape": [0.2419771, 7.977992, 0.2578667],
    "ensemble": [0.1484732, 0.0080421, 0.7922277, 0.051257],
    "ensemble_gradient": [138.3352],
    "fgsm-keras": [0.1, 16.74217, -0.1672678],
    "fgsm-tape": [0.1, 16.74217, -0.1672678],
    "fgsm_l2_minimal-keras": [0.2890204, 8.087837, 0.0651116],
    "fgsm_l2_minimal-tape": [0.2890204, 8.087837, 0.0651117],
    "fit-keras": [0.164632, 0.0093344, 0.7682432, 0.0577905, 0.2270165, 0.0026261, 0.7623911, 0.0079663],
    "fit-tape": [2.997662, 0.6273097, 3.56533, 2.174768, 4.208671, 0.3537976, 4.315809, 1.181876],
    "inversion": [6.10749, 4.892772],
    "jsma-keras": [0.8872238, 7.7545, -0.6264745],
    "jsma-tape": [0.8654201, 8.325667, -1.199961],
    "labels": [0.9, 0.0333333, 0.0333333, 0.0333333],
    "loss-keras": [1.907351, 6.1153, 0.1148602, 3.210877, 2.749556, 5.447353],
    "loss-tape": [1.907351, 6.1153, 0.1148602, 3.210877, 2.749557, 5.447353],
    "loss_gradient-keras": [24.61923, 28.65176, 2.738526, 32.59952, 28.24732, 32.10816],
    "loss_gradient-tape": [4.103205, 4.775293, 0.456421, 5.433253, 4.707887, 5.35136],
    "loss_sensitivity": [0.7371438],
    "madry": [2.589519, 0.5227233, 3.941978, 2.114275, 3.765557, 0.1366856, 4.718041, 1.133994],
    "membership": [0, 0, 1, 0, 0, 0],
    "momentum-keras": [0.1, 15.75217, 0.211842],
    "newtonfool-keras": [0.0576171, 2.002439, 0.0409556],
    "newtonfool-tape": [0.0549315, 2.096379, 0.0953036],
    "patch 0.0": [0.5, 29.56815, 15.10785, 32, 0.9477769, 76.5666, 2.324746],
    "patch 22.5": [0.5, 29.2355, 14.25089, 32, 0.9249525, 75.97369, 3.423674],
    "pgd-keras": [0.1, 14.87217, -0.1125556],
    "pgd-tape": [0.1, 14.87217, -0.1125556],
    "pgd_l2_numpy-keras": [0.3847844, 12.68819, 0.0266223],
    "pgd_l2_numpy-tape": [0.3847845, 12.68819, 0.0266224],
    "post_confidence": [0, 0, 0.7922277, 0, 0, 0, 0.7891061, 0],
    "post_labels": [1, 0, 1, 0, 1, 0, 1, 0],
    "post_rounded": [0.1, 0, 0.8, 0.1, 0.2, 0, 0.8, 0],
    "post_sigmoid": [0.1599315, 0.1050595, 0.6319842, 0.1030247, 0.1857142, 0.1183368, 0.5947712, 0.1011778],
    "predict-keras": [0.1484732, 0.0080421, 0.7922277, 0.051257, 0.2017831, 0.0022088, 0.7891061, 0.006902],
    "predict-tape": [2.990195, 0.0744803, 4.664639, 1.926643, 4.197823, -0.3169149, 5.56153, 0.8224475],
    "robustness": [0.1354734],
    "simba-keras": [0.4443183, 18.16575, 1.117693],
    "smoothed": [182.1934],
    "smoothed_by_tf": [183.2272],
    "smoothed_gradient": [10.74658],
    "spatial-tape": [0.993852, 70.37493, -2.691798],
    "square-tape": [0.2, 24.56756, -2.714814],
    "squeezed": [188],
    "squeezed_gradient": [25.42148],
    "squeezed_predict": [3.263505, 0.5139932, 5.084864, 2.569657, 3.637275, -0.243882, 5.451742, 0.1099915],
    "targeted_fgsm": [0.1, 33.15988, -0.1706124],
    "targeted_pgd": [0.2, 50.63288, -0.2110596],
    "thermometer": [936],
    "trainer": [2.387755, 0.684719, 3.611674, 2.199645, 3.466675, 0.3598824, 4.347947, 1.230131],
    "turned": [0.9374745, 34.2227, -3.454761],
    "universal-keras": [0.3, 42.06647, -0.74123],
    "universal-tape": [0.3, 42.06647, -0.74123],
    "virtual-keras": [0.1416547, 4.746017, 0.0707918],
    "wasserstein-keras": [0.8660458, 26.13118, 0.9815642],
    "wasserstein-tape": [0.572454, 15.63645, 0.1664898],
}  # fmt: skip
