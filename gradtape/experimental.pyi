# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape import extension_type as extension_type
from gradtape import tnp as _tnp
from gradtape._typing import Any as _Any
from gradtape.data.iterator import Optional as Optional
from gradtape.extension_type import BatchableExtensionType as BatchableExtensionType
from gradtape.extension_type import ExtensionType as ExtensionType
from gradtape.extension_type.dispatch import dispatch_for_api as dispatch_for_api
from gradtape.extension_type.dispatch import dispatch_for_binary_elementwise_apis as dispatch_for_binary_elementwise_apis
from gradtape.extension_type.dispatch import dispatch_for_binary_elementwise_assert_apis as dispatch_for_binary_elementwise_assert_apis
from gradtape.extension_type.dispatch import dispatch_for_unary_elementwise_apis as dispatch_for_unary_elementwise_apis
from gradtape.extension_type.dispatch import unregister_dispatch_for as unregister_dispatch_for
from gradtape.extension_type.specs import ExtensionTypeBatchEncoder as ExtensionTypeBatchEncoder
from gradtape.extension_type.specs import ExtensionTypeSpec as ExtensionTypeSpec
from gradtape.ragged.partitions import RowPartition as RowPartition
from gradtape.ragged.shapes import DynamicRaggedShape as DynamicRaggedShape

class dlpack:
    @staticmethod
    def from_dlpack(dlcapsule: _Any) -> _Any: ...
    @staticmethod
    def to_dlpack(tf_tensor: _Any) -> _Any: ...
numpy = _tnp
